* Five-transistor OTA as a follower: how far the output is from the input, the amplifier's offset; its power; and how
* long it rises and falls from 25 to 75 % of a step of 0.1 V: C 50 mV / I while the tail current limits it, then longer.
* A differential pair m1 m2, a current mirror m3 m4 as its load, a tail current from the mirror m5 m6. In weak inversion
* the offset is the mismatch of the pair plus that of the mirror, by g_m(p) / g_m(n), which is near 1 here.
* Written anew from E. Vittoz and J. Fellrath, CMOS analog integrated circuits based on weak inversion operation,
* IEEE J. Solid-State Circuits 12 (1977) 224; offset: P. Kinget, IEEE J. Solid-State Circuits 40 (2005) 1212.
.param supply=1.8 bias=10n
vdd vdd 0 {supply}
vin in 0 pwl(0 {supply/2-0.05} 20u {supply/2-0.05} 21u {supply/2+0.05} 100u {supply/2+0.05} 101u {supply/2-0.05})
m1 x in tail 0 generic180_n w=2u l=2u
m2 out out tail 0 generic180_n w=2u l=2u
m3 x x vdd vdd generic180_p w=2u l=4u
m4 out x vdd vdd generic180_p w=2u l=4u
m5 tail b 0 0 generic180_n w=2u l=2u
m6 b b 0 0 generic180_n w=2u l=2u
ib vdd b {bias}
cl out 0 1p
.tran 0.25u 160u
.meas tran offset find v(out,in) at=20u
.meas tran drawn find i(vdd) at=20u
.meas tran power param='-drawn*supply'
.meas tran rise trig v(out) val='supply/2-0.025' rise=1 targ v(out) val='supply/2+0.025' rise=1
.meas tran fall trig v(out) val='supply/2+0.025' fall=1 targ v(out) val='supply/2-0.025' fall=1
.end
