* dpi on generic180

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
