* winner on generic180

* winner-take-all of 3 currents
.subckt winner_3 bias in0 in1 in2 out0 out1 out2
m1_0 in0 common 0 0 generic180_n w=5e-06 l=5e-06 m=1
m2_0 out0 in0 common 0 generic180_n w=5e-06 l=5e-06 m=1
m1_1 in1 common 0 0 generic180_n w=5e-06 l=5e-06 m=1
m2_1 out1 in1 common 0 generic180_n w=5e-06 l=5e-06 m=1
m1_2 in2 common 0 0 generic180_n w=5e-06 l=5e-06 m=1
m2_2 out2 in2 common 0 generic180_n w=5e-06 l=5e-06 m=1
msource common bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends winner_3
