* network compiled by cosim for generic180

* input diode: current drawn from p -> gate line p, 8 units
.subckt input_diode_8 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends input_diode_8

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* symbol comparator: out is high where the signal's current is above that of thresh
.subckt symbol_comparator_8 line thresh out vdd
m1 out line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 out thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends symbol_comparator_8

* input diode: current drawn from p -> gate line p, 64 units
.subckt input_diode_64 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=64
.ends input_diode_64

* steering AND: pulls I_gain from node where all 2 bits are high
.subckt steering_and_2 node gain bit0 bit1
mbit0 node bit0 s0 0 generic180_n w=1e-06 l=1e-06 m=1
mbit1 s0 bit1 s1 0 generic180_n w=1e-06 l=1e-06 m=1
msource s1 gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends steering_and_2

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* inverter: resetb -> reset
.subckt reset_inverter resetb reset vdd
mn reset resetb 0 0 generic180_n w=4e-07 l=4e-07 m=1
mp reset resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends reset_inverter

* clocked 9T cell: track while clk is high, decide while clk is low; reset to on
.subckt schmitt_clocked_apart_on cand thresh width gain out clk clkb dec decb reset vdd
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
mdn latch dec v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch decb v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends schmitt_clocked_apart_on

* pedestal: what a state of 0 still carries, so that its gate lines settle
.subckt pedestal_sink out line
msink out line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends pedestal_sink

* current mirror: gate line p -> gate line n, 8 units, n diode shortened by 1.0384
.subckt signal_rails_8 p n vdd
mcopy n p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
mdiode n n 0 0 generic180_n w=1e-06 l=4.815e-06 m=8
.ends signal_rails_8

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

* linear row of readout.0
.subckt row_readout_0 node vdd state_0_n zero_p
* readout.weight[0,0] target 1 realised 1
mw1 node state_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.0: pedestal of its sources target -1 realised -1
mw4 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_readout_0

* linear row of readout.1
.subckt row_readout_1 node vdd state_1_n zero_p
* readout.weight[1,1] target 1 realised 1
mw2 node state_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.1: pedestal of its sources target -1 realised -1
mw4 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_readout_1

* linear row of readout.2
.subckt row_readout_2 node vdd state_2_n zero_p
* readout.weight[2,2] target 1 realised 1
mw3 node state_2_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.2: pedestal of its sources target -1 realised -1
mw4 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_readout_2

* the whole network
.subckt network vdd resetb clk0 clkb0 dec0 decb0 in_0_p in_1_p in_2_p one_p zero_p bias_symbol_0 bias_gain_0
+ bias_thresh_0 bias_width_0 bias_pedestal_0 readout_0 readout_1 readout_2
xdiode_in_0 in_0_p vdd input_diode_8
xbias_symbol_0 bias_symbol_0 bias_diode
xbit_in_0 in_0_p bias_symbol_0 in_0_bit vdd symbol_comparator_8
xdiode_in_1 in_1_p vdd input_diode_8
xbit_in_1 in_1_p bias_symbol_0 in_1_bit vdd symbol_comparator_8
xdiode_in_2 in_2_p vdd input_diode_8
xbit_in_2 in_2_p bias_symbol_0 in_2_bit vdd symbol_comparator_8
xdiode_one one_p vdd input_diode_8
xdiode_zero zero_p vdd input_diode_64
xbias_gain_0 bias_gain_0 bias_diode
* state.weight[0,0] on products.0
xand_state_0_1 state_0_cand bias_gain_0 in_0_bit state_0_bit steering_and_2
* state.weight[0,5] on products.5
xand_state_0_6 state_0_cand bias_gain_0 in_2_bit state_1_bit steering_and_2
* state.weight[0,7] on products.7
xand_state_0_8 state_0_cand bias_gain_0 in_1_bit state_2_bit steering_and_2
xcand_state_0 state_0_cand vdd candidate_diode
xbias_thresh_0 bias_thresh_0 bias_diode
xbias_width_0 bias_width_0 bias_diode
xreset_inverter resetb reset vdd reset_inverter
* state.0: rise 0.55 fall 0.35 level 1
xcell_state_0 state_0_cand bias_thresh_0 bias_width_0 bias_gain_0 state_0_p clk0 clkb0 dec0 decb0 reset vdd
+ schmitt_clocked_apart_on
xbias_pedestal_0 bias_pedestal_0 bias_diode
xpedestal_state_0 state_0_p bias_pedestal_0 pedestal_sink
xrails_state_0 state_0_p state_0_n vdd signal_rails_8
xbit_state_0 state_0_p bias_symbol_0 state_0_bit vdd symbol_comparator_8
* state.weight[1,1] on products.1
xand_state_1_2 state_1_cand bias_gain_0 in_1_bit state_0_bit steering_and_2
* state.weight[1,3] on products.3
xand_state_1_4 state_1_cand bias_gain_0 in_0_bit state_1_bit steering_and_2
* state.weight[1,8] on products.8
xand_state_1_9 state_1_cand bias_gain_0 in_2_bit state_2_bit steering_and_2
xcand_state_1 state_1_cand vdd candidate_diode
* state.1: rise 0.55 fall 0.35 level 1
xcell_state_1 state_1_cand bias_thresh_0 bias_width_0 bias_gain_0 state_1_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xpedestal_state_1 state_1_p bias_pedestal_0 pedestal_sink
xrails_state_1 state_1_p state_1_n vdd signal_rails_8
xbit_state_1 state_1_p bias_symbol_0 state_1_bit vdd symbol_comparator_8
* state.weight[2,2] on products.2
xand_state_2_3 state_2_cand bias_gain_0 in_2_bit state_0_bit steering_and_2
* state.weight[2,4] on products.4
xand_state_2_5 state_2_cand bias_gain_0 in_1_bit state_1_bit steering_and_2
* state.weight[2,6] on products.6
xand_state_2_7 state_2_cand bias_gain_0 in_0_bit state_2_bit steering_and_2
xcand_state_2 state_2_cand vdd candidate_diode
* state.2: rise 0.55 fall 0.35 level 1
xcell_state_2 state_2_cand bias_thresh_0 bias_width_0 bias_gain_0 state_2_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xpedestal_state_2 state_2_p bias_pedestal_0 pedestal_sink
xrails_state_2 state_2_p state_2_n vdd signal_rails_8
xbit_state_2 state_2_p bias_symbol_0 state_2_bit vdd symbol_comparator_8
xrow_readout_0 readout_0 vdd state_0_n zero_p row_readout_0
xrow_readout_1 readout_1 vdd state_1_n zero_p row_readout_1
xrow_readout_2 readout_2 vdd state_2_n zero_p row_readout_2
.ends network
