* steering on generic180

* steering AND: pulls I_gain from node where all 2 bits are high
.subckt steering_and_2 node gain bit0 bit1
mbit0 node bit0 s0 0 generic180_n w=1e-06 l=1e-06 m=1
mbit1 s0 bit1 s1 0 generic180_n w=1e-06 l=1e-06 m=1
msource s1 gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends steering_and_2

* symbol comparator: out is high where the signal's current is above that of thresh
.subckt symbol_comparator_8 line thresh out vdd
m1 out line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 out thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends symbol_comparator_8
