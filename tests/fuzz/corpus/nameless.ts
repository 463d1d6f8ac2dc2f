@problemName x
@
@data
1,2:a
