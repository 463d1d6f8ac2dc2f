@problemName x
@univariate true
@classLabel true a b
@data
1,2,3:a
4,?,1_0:b
