* ladder on generic180

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* rung of a ladder, reset to off
.subckt rung_off in u thresh width gain s out resetb vdd
xcand u vdd candidate_diode
min u in 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 v0 u vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m9 v0 fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
m3 s v0 a 0 generic180_n w=1e-06 l=1e-06 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
m4 s s vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m6 fb v0 b 0 generic180_n w=1e-06 l=1e-06 m=1
m8 b width 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 out v0 c 0 generic180_n w=1e-06 l=1e-06 m=1
m11 c gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset u resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends rung_off

* rung of a ladder, reset to on
.subckt rung_on in u thresh width gain s out resetb vdd
xcand u vdd candidate_diode
min u in 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 v0 u vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m9 v0 fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
m3 s v0 a 0 generic180_n w=1e-06 l=1e-06 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
m4 s s vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m6 fb v0 b 0 generic180_n w=1e-06 l=1e-06 m=1
m8 b width 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 out v0 c 0 generic180_n w=1e-06 l=1e-06 m=1
m11 c gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset v0 resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends rung_on

* differential pair integrator: each out sinks a low-passed copy of the current of line
.subckt dpi_1 line vg tau out0 vdd
min vs line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m1 0 vg vs vs generic180_p w=5e-06 l=5e-06 m=1
m2 vc vc vs vs generic180_p w=5e-06 l=5e-06 m=1
mtau vc tau 0 0 generic180_n w=5e-06 l=5e-06 m=1
cc vc 0 7.32242368372e-13
mout0 out0 vc 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends dpi_1

* differential pair integrator: each out sinks a low-passed copy of the current of line
.subckt dpi_2 line vg tau out0 out1 vdd
min vs line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m1 0 vg vs vs generic180_p w=5e-06 l=5e-06 m=1
m2 vc vc vs vs generic180_p w=5e-06 l=5e-06 m=1
mtau vc tau 0 0 generic180_n w=5e-06 l=5e-06 m=1
cc vc 0 7.32242368372e-13
mout0 out0 vc 0 0 generic180_n w=5e-06 l=5e-06 m=1
mout1 out1 vc 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends dpi_2

* ladder of 3 rungs, starts on level 1
.subckt ladder_3_1 in thresh_1 width_1 thresh width gain vg tau out resetb vdd
xrung1 in u1 thresh_1 width_1 gain s1 out resetb vdd rung_on
xdpi1 s1 vg tau u2 vdd dpi_1
xrung2 in u2 thresh width gain s2 out resetb vdd rung_off
xdpi2 s2 vg tau u1 u3 vdd dpi_2
xrung3 in u3 thresh width gain s3 out resetb vdd rung_off
xdpi3 s3 vg tau u2 vdd dpi_1
mdiode out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends ladder_3_1
