* tau_cell on generic180

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

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* gated tau-cell: out carries a copy of the current of line, low-passed in the pulse by the current of tau
.subckt tau_cell_gated line tau out pulseb resetb vdd
min i line vdd vdd generic180_p w=5e-06 l=5e-06 m=1
midiode i i 0 0 generic180_n w=5e-06 l=5e-06 m=1
msink d i 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 d b vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m3 0 d b b generic180_p w=1e-06 l=5e-06 m=1
mtau3 b tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
m2 0 d s s generic180_p w=1e-06 l=5e-06 m=1
mtau2 s tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
mpulse vc pulseb s vdd generic180_p w=4e-07 l=4e-07 m=1
mreset vc resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
cc vc vdd 5.17114257647e-12
m4 o vc vdd vdd generic180_p w=5e-06 l=5e-06 m=1
modiode o o 0 0 generic180_n w=5e-06 l=4.81e-06 m=1
mosink out o 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends tau_cell_gated

* gate line p of the current on which tau-cells rest
.subckt rest_line bias tau vdd
msink tau bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode tau tau vdd vdd generic180_p w=5e-06 l=5e-06 m=8
.ends rest_line

* gated tau-cell: out carries a copy of the current of line, low-passed in the pulse by the current of tau
.subckt tau_cell_first line tau out pulseb resetb rest vdd
min i line vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mfloor i rest vdd vdd generic180_p w=5e-06 l=5e-06 m=1
midiode i i 0 0 generic180_n w=5e-06 l=5e-06 m=1
msink d i 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 d b vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m3 0 d b b generic180_p w=1e-06 l=5e-06 m=1
mtau3 b tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
m2 0 d s s generic180_p w=1e-06 l=5e-06 m=1
mtau2 s tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
mpulse vc pulseb s vdd generic180_p w=4e-07 l=4e-07 m=1
mreset vc resetb rest vdd generic180_p w=4e-07 l=4e-07 m=1
cc vc vdd 5.17114257647e-12
m4 o vc vdd vdd generic180_p w=5e-06 l=5e-06 m=1
modiode o o 0 0 generic180_n w=5e-06 l=4.81e-06 m=1
mosink out o 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends tau_cell_first

* gated tau-cell: out carries a copy of the current of line, low-passed in the pulse by the current of tau
.subckt tau_cell_next line tau out pulseb resetb rest vdd
min i line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
midiode i i 0 0 generic180_n w=5e-06 l=5e-06 m=1
msink d i 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 d b vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m3 0 d b b generic180_p w=1e-06 l=5e-06 m=1
mtau3 b tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
m2 0 d s s generic180_p w=1e-06 l=5e-06 m=1
mtau2 s tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
mpulse vc pulseb s vdd generic180_p w=4e-07 l=4e-07 m=1
mreset vc resetb rest vdd generic180_p w=4e-07 l=4e-07 m=1
cc vc vdd 5.17114257647e-12
m4 o vc vdd vdd generic180_p w=5e-06 l=5e-06 m=1
modiode o o 0 0 generic180_n w=5e-06 l=4.81e-06 m=1
mosink out o 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends tau_cell_next

* tau carries I_b a / (a + I_b), a a unit of line
.subckt ratio_gate line half bias tau vdd
mcopy a line vdd vdd generic180_p w=1e-06 l=5e-06 m=1
mhalf b half vdd vdd generic180_p w=1e-06 l=5e-06 m=1
mda a a r 0 generic180_n w=5e-06 l=5e-06 m=1
mdb b b r 0 generic180_n w=5e-06 l=5e-06 m=1
mlow r r 0 0 generic180_n w=5e-06 l=5e-06 m=1
ma tau a t 0 generic180_n w=5e-06 l=5e-06 m=1
mb vdd b t 0 generic180_n w=5e-06 l=5e-06 m=1
mtail t bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode tau tau vdd vdd generic180_p w=1e-06 l=5e-06 m=1
.ends ratio_gate
