#c
@problemName x
@timestamps false
@missing false
@univariate false
@dimensions 2
@equalLength true
@seriesLength 2
@targetlabel true
@data
@dimensions 2
3,,:0.5
5,6:7,8:1.5
