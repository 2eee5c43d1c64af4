* toggle on generic180

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* sample gate: hold follows cand while clk is high
.subckt sampler cand hold clk clkb resetb vdd
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
chold hold vdd 4e-13
.ends sampler

* comparator: latch takes the decision while clk is low and keeps it while clk is high
.subckt comparator hold thresh latch clk clkb vdd
m1 v0 hold vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdn latch clkb v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch clk v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends comparator

* clocked 9T cell: track while clk is high, decide while clk is low
.subckt schmitt_clocked_latch cand thresh width gain out clk clkb resetb vdd latch
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
chold hold vdd 4e-13
m1 v0 hold vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m9 v0 fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
m3 out latch a 0 generic180_n w=1e-06 l=1e-06 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
m4 out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m6 fb latch b 0 generic180_n w=1e-06 l=1e-06 m=1
m8 b width 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mdn latch clkb v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch clk v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends schmitt_clocked_latch

* toggle: the state changes at every pulse at which the candidate was above its threshold
.subckt toggle cand upper base delta thresh width gain out clk clkb pulse pulseb resetb vdd
xsampler cand hold clk clkb resetb vdd sampler
xmaster hold upper up clk clkb vdd comparator
xdrive drive vdd candidate_diode
mbase drive base 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdelta drive delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mup drive up a 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_up a delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode zq zq vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mzq_up zq up b 0 generic180_n w=1e-06 l=1e-06 m=1
mzq_q b q c 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_zq c delta 0 0 generic180_n w=5e-06 l=5e-06 m=2
mpush drive zq vdd vdd generic180_p w=5e-06 l=5e-06 m=1
xslave drive thresh width gain out pulseb pulse resetb vdd q schmitt_clocked_latch
.ends toggle
