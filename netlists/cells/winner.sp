* Winner-take-all of three currents: one ramps from 0.7 to 1.3 of the second in 6 s, and the third is half of it.
* turn = 1: the ratio at which the first two share the bias; won = I_bias: what the winner gets; range: the part of an
* input over which the decision goes from a tenth to nine tenths, 2 n U_T ln 9 times the output conductance of M1.
* Cells, as scripts/write_goldens.py writes them:
* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

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
* Bench:
.param supply=1.8 level=1n bias=1n
vdd vdd 0 {supply}
iin0 vdd in0 pwl(0 {0.7*level} 6 {1.3*level})
iin1 vdd in1 {level}
iin2 vdd in2 {0.5*level}
ibias vdd bias {bias}
xbias bias bias_diode
xwin bias in0 in1 in2 out0 out1 out2 winner_3
vo0 vdd out0 0
vo1 vdd out1 0
vo2 vdd out2 0
.tran 5m 6
.meas tran turned when i(vo0)=i(vo1) rise=1
.meas tran early when i(vo0)='0.1*bias' rise=1
.meas tran late when i(vo0)='0.9*bias' rise=1
.meas tran won find i(vo0) at=6
.meas tran lost find i(vo1) at=6
.meas tran turn param='0.7+0.1*turned'
.meas tran range param='0.1*(late-early)'
.end
