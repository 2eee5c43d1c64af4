* quantiser on generic180

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

* driver: reset, retain or set current while pulse is high, retain otherwise
.subckt driver up down base delta in pulse pulseb vdd
mbase p base 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdown p down d 0 generic180_n w=1e-06 l=1e-06 m=1
mrest p pulseb d 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_d d delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mpulse p pulse m 0 generic180_n w=1e-06 l=1e-06 m=1
mup m up u 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_u u delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode_p p p vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mcopy in p vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mdiode_n in in 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends driver

* three-level quantiser: set, retain or reset on gate line n `in`
.subckt quantiser cand upper lower base delta in clk clkb pulse pulseb resetb vdd
xsampler cand hold clk clkb resetb vdd sampler
xupper hold upper up clk clkb vdd comparator
xlower hold lower down clk clkb vdd comparator
xdriver up down base delta in pulse pulseb vdd driver
.ends quantiser
