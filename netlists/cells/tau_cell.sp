* Tau-cell, free running: an input of 0.2 nA that jumps to 1 nA at 10 ms and back at 70 ms.
* tau = C n U_T / I_tau = 10 ms, from three points of an exponential that are 6 ms apart, whatever gain and end are:
* -6 ms / ln((b - c) / (a - b)). gain = 1 but for the output conductance of five mirrors.
* After a step up the share C_b / C arrives at once (cosim/cells/tau_cell.py), so tau_up is shorter than tau_down.
* Cells, as scripts/write_goldens.py writes them:
* input diode: current drawn from p -> gate line p, 8 units
.subckt input_diode_8 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends input_diode_8

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* gate line p of a constant I_tau
.subckt tau_line bias tau vdd
msink tau bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode tau tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
.ends tau_line

* tau-cell: out sinks a low-passed copy of the current of line
.subckt tau_cell line tau out vdd
min i line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
midiode i i 0 0 generic180_n w=5e-06 l=5e-06 m=1
msink d i 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 d b vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m3 0 d b b generic180_p w=1e-06 l=5e-06 m=1
mtau3 b tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
m2 0 d vc vc generic180_p w=1e-06 l=5e-06 m=1
mtau2 vc tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
cc vc vdd 2.95132801909e-12
m4 o vc vdd vdd generic180_p w=5e-06 l=5e-06 m=1
modiode o o 0 0 generic180_n w=5e-06 l=5e-06 m=1
mosink out o 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends tau_cell
* Bench:
.param supply=1.8 low=0.2n high=1n itau=10p node=0.54
vdd vdd 0 {supply}
iin p 0 pwl(0 {low} 10m {low} 10.01m {high} 70m {high} 70.01m {low})
xin p vdd input_diode_8
itau vdd bias {itau}
xbias bias bias_diode
xline bias tau vdd tau_line
xcell p tau out vdd tau_cell
vload load 0 {supply-node}
vout load out 0
.tran 0.1m 90m
.meas tran start find i(vout) at=9.9m
.meas tran a1 find i(vout) at=12m
.meas tran b1 find i(vout) at=18m
.meas tran c1 find i(vout) at=24m
.meas tran settled find i(vout) at=69.9m
.meas tran a2 find i(vout) at=72m
.meas tran b2 find i(vout) at=78m
.meas tran c2 find i(vout) at=84m
.meas tran gain param='settled/high'
.meas tran gain_low param='start/low'
.meas tran left_up param='(c1-b1)/max(b1-a1,1f)'
.meas tran left_down param='(b2-c2)/max(a2-b2,1f)'
.meas tran tau_up param='-6m/ln(max(left_up,1u))'
.meas tran tau_down param='-6m/ln(max(left_down,1u))'
.end
