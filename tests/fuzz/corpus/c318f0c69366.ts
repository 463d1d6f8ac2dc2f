@problemName x
@univariate true
@dimensions 2
bel true a b
@d@univariate true
@clnivariate true
@classLabel true a b
@data
12,3:a
4,?,6:b
 true a b
@d@univariate true
@classLabel true a b
@data
12,3:a
4,?,6:b
