* schmitt_clocked on generic180

* clocked 9T cell: track while clk is high, decide while clk is low
.subckt schmitt_clocked cand thresh width gain out clk clkb resetb vdd
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
.ends schmitt_clocked

* clocked 9T cell: track while clk is high, decide while clk is low; reset to on
.subckt schmitt_clocked_on cand thresh width gain out clk clkb reset vdd
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold reset 0 0 generic180_n w=4e-07 l=4e-07 m=1
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
.ends schmitt_clocked_on

* clocked 9T cell: track while clk is high, decide while clk is low
.subckt schmitt_clocked_apart cand thresh width gain out clk clkb dec decb resetb vdd
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
mdn latch dec v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch decb v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends schmitt_clocked_apart

* inverter: resetb -> reset
.subckt reset_inverter resetb reset vdd
mn reset resetb 0 0 generic180_n w=4e-07 l=4e-07 m=1
mp reset resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends reset_inverter
