* register on generic180

* sample gate: hold follows cand while clk is high
.subckt sampler cand hold clk clkb resetb vdd
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
chold hold vdd 4e-13
.ends sampler

* comparator of a window
.subckt window hold thresh out vdd
m1 out hold vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 out thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends window

* decision of a window: a comparator, and a latch that stands still in a pulse
.subckt window_decision hold thresh above below closed open kp vdd
xcompare hold thresh compared vdd window
mload_lower lower kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mlower_compared lower compared 0 0 generic180_n w=4e-07 l=4e-07 m=1
min_above_lower in_above closed lower 0 generic180_n w=4e-07 l=4e-07 m=1
mload_above above kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mabove_in_above above in_above 0 0 generic180_n w=4e-07 l=4e-07 m=1
mload_below below kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mbelow_above below above 0 0 generic180_n w=4e-07 l=4e-07 m=1
mbelow_in_above below open in_above 0 generic180_n w=4e-07 l=4e-07 m=1
.ends window_decision

* level of a register: q takes over whether val exceeds turn; reset to off
.subckt level_off val turn keep gain out write writeb reset vdd
m1 v0 val vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 v0 turn 0 0 generic180_n w=5e-06 l=5e-06 m=1
m9 q fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mkeep q keep 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 fb write new 0 generic180_n w=4e-07 l=4e-07 m=1
m4 new v0 b 0 generic180_n w=4e-07 l=4e-07 m=1
m11 fb writeb old 0 generic180_n w=4e-07 l=4e-07 m=1
m6 old q b 0 generic180_n w=4e-07 l=4e-07 m=1
m8 b keep 0 0 generic180_n w=5e-06 l=5e-06 m=2
m3 out q a 0 generic180_n w=4e-07 l=4e-07 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset q reset 0 0 generic180_n w=4e-07 l=4e-07 m=1
.ends level_off

* level of a register: q takes over whether val exceeds turn; reset to on
.subckt level_on val turn keep gain out write writeb resetb vdd
m1 v0 val vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 v0 turn 0 0 generic180_n w=5e-06 l=5e-06 m=1
m9 q fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mkeep q keep 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 fb write new 0 generic180_n w=4e-07 l=4e-07 m=1
m4 new v0 b 0 generic180_n w=4e-07 l=4e-07 m=1
m11 fb writeb old 0 generic180_n w=4e-07 l=4e-07 m=1
m6 old q b 0 generic180_n w=4e-07 l=4e-07 m=1
m8 b keep 0 0 generic180_n w=5e-06 l=5e-06 m=2
m3 out q a 0 generic180_n w=4e-07 l=4e-07 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset q resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends level_on

* thermometer register of 3 levels, starts on 1
.subckt register_3_1 cand pos neg upper lower keep release gain turn1 turn2 turn3 out clk clkb pulse pulseb
+ resetb reset vdd
xsampler cand hold clk clkb resetb vdd sampler
xupper hold upper up upb pulseb pulse kp vdd window_decision
xlower hold lower stays down pulseb pulse kp vdd window_decision
msupply kp keep 0 0 generic180_n w=5e-06 l=5e-06 m=3
mdiode kp kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mpulse w pulseb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
mwrite_up write upb w vdd generic180_p w=4e-07 l=4e-07 m=1
mwrite_down write stays w vdd generic180_p w=4e-07 l=4e-07 m=1
mrelease write release 0 0 generic180_n w=5e-06 l=5e-06 m=1
mload_writeb writeb kp vdd vdd generic180_p w=1e-06 l=1e-06 m=3
mwriteb_write writeb write 0 0 generic180_n w=4e-07 l=4e-07 m=1
mpos val upb pos vdd generic180_p w=4e-07 l=4e-07 m=1
mneg val up neg vdd generic180_p w=4e-07 l=4e-07 m=1
xlevel1 val turn1 keep gain out write writeb resetb vdd level_on
xlevel2 val turn2 keep gain out write writeb reset vdd level_off
xlevel3 val turn3 keep gain out write writeb reset vdd level_off
moutput out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends register_3_1
