* Differential pair integrator behind an input diode: a pulse of 0.5 nA for 40 ms, and what follows.
* Settled, I = I_in I_g / I_tau - I_g: gain = (1.04871 - 0.021) by the pins, and 1 with the output conductance, for
* which calibration chose I_g. Without input dI/dt = -I / tau, tau = C n U_T / I_tau = 2.5 ms, at every current.
* delay: from the input's edge to half of its current, in which the dead time below I_g is contained.
* Cells, as scripts/write_goldens.py writes them:
* input diode: current drawn from p -> gate line p, 8 units
.subckt input_diode_8 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends input_diode_8

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* differential pair integrator: each out sinks a low-passed copy of the current of line
.subckt dpi_1 line vg tau out0 vdd
min vs line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m1 0 vg vs vs generic180_p w=5e-06 l=5e-06 m=1
m2 vc vc vs vs generic180_p w=5e-06 l=5e-06 m=1
mtau vc tau 0 0 generic180_n w=5e-06 l=5e-06 m=1
cc vc 0 7.32242368372e-13
mout0 out0 vc 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends dpi_1
* Bench:
.param supply=1.8 signal=500p itau=10p ig=10.4871p node=0.54
vdd vdd 0 {supply}
iin p 0 pwl(0 0 5m 0 5.01m {signal} 45m {signal} 45.01m 0)
xin p vdd input_diode_8
itau vdd tau {itau}
ig vdd vg {ig}
xtau tau bias_diode
xg vg bias_diode
xdpi p vg tau out vdd dpi_1
vload load 0 {supply-node}
vout load out 0
.tran 50u 65m
.meas tran settled find i(vout) at=44.9m
.meas tran gain param='settled/signal'
.meas tran tau trig i(vout) val='0.6*signal' fall=1 td=45m targ i(vout) val='0.6*signal/exp(1)' fall=1 td=45m
.meas tran risen when i(vout)='0.5*signal' rise=1
.meas tran delay param='risen-5m'
.end
