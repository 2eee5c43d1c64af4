* network compiled by cosim for generic180

* input diode: current drawn from p -> gate line p, 8 units
.subckt input_diode_8 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends input_diode_8

* current mirror: gate line p -> gate line n, 8 units, n diode shortened by 1.0384
.subckt signal_rails_8 p n vdd
mcopy n p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
mdiode n n 0 0 generic180_n w=1e-06 l=4.815e-06 m=8
.ends signal_rails_8

* input diode: current drawn from p -> gate line p, 64 units
.subckt input_diode_64 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=64
.ends input_diode_64

* linear row of hidden.0
.subckt row_hidden_0 node vdd in_0_n in_1_p one_n zero_p
* hidden.weight[0,0] target 1.25 realised 1.25
mw0 node in_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=10
* hidden.weight[0,1] target -0.5 realised -0.5
mw1 node in_1_p vdd vdd generic180_p w=1e-06 l=5e-06 m=4
* hidden.bias[0] target 0.125 realised 0.125
mw2 node one_n 0 0 generic180_n w=1e-06 l=5e-06 m=1
* hidden.0: pedestal of its sources target -0.75 realised -0.75
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=6
.ends row_hidden_0

* rectifier, 8 units
.subckt relu_diode node vdd
mdiode node node vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends relu_diode

* linear row of hidden.1
.subckt row_hidden_1 node vdd in_0_n in_1_n zero_p
* hidden.weight[1,0] target 0.375 realised 0.375
mw0 node in_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=3
* hidden.weight[1,1] target 0.875 realised 0.875
mw1 node in_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=7
* hidden.1: pedestal of its sources target -1.25 realised -1.25
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=10
.ends row_hidden_1

* linear row of hidden.2
.subckt row_hidden_2 node vdd in_0_p in_1_n one_p zero_p
* hidden.weight[2,0] target -1 realised -1
mw0 node in_0_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
* hidden.weight[2,1] target 1.5 realised 1.5
mw1 node in_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=12
* hidden.bias[2] target -0.25 realised -0.25
mw2 node one_p vdd vdd generic180_p w=1e-06 l=5e-06 m=2
* hidden.2: pedestal of its sources target -0.5 realised -0.5
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=4
.ends row_hidden_2

* linear row of layer0.0
.subckt row_layer0_0 node vdd one_n hidden_0_n hidden_1_n hidden_2_p
* layer0.bias[0] target 0.25 realised 0.25
mw0 node one_n 0 0 generic180_n w=1e-06 l=5e-06 m=2
* layer0.weight[0,0] target 0.625 realised 0.625
mw1 node hidden_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=5
* layer0.weight[0,1] target 0.75 realised 0.75
mw2 node hidden_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=6
* layer0.weight[0,2] target -1.125 realised -1.125
mw3 node hidden_2_p vdd vdd generic180_p w=1e-06 l=5e-06 m=9
.ends row_layer0_0

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

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

* pedestal: what a state of 0 still carries, so that its gate lines settle
.subckt pedestal_sink out line
msink out line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends pedestal_sink

* linear row of layer0.1
.subckt row_layer0_1 node vdd one_p hidden_0_p hidden_1_n hidden_2_n
* layer0.bias[1] target -0.125 realised -0.125
mw0 node one_p vdd vdd generic180_p w=1e-06 l=5e-06 m=1
* layer0.weight[1,0] target -0.875 realised -0.875
mw1 node hidden_0_p vdd vdd generic180_p w=1e-06 l=5e-06 m=7
* layer0.weight[1,1] target 1.375 realised 1.375
mw2 node hidden_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=11
* layer0.weight[1,2] target 0.25 realised 0.25
mw3 node hidden_2_n 0 0 generic180_n w=1e-06 l=5e-06 m=2
.ends row_layer0_1

* linear row of readout.0
.subckt row_readout_0 node vdd one_n layer0_0_n layer0_1_p zero_p
* readout.bias[0] target 0.125 realised 0.125
mw0 node one_n 0 0 generic180_n w=1e-06 l=5e-06 m=1
* readout.weight[0,0] target 1 realised 1
mw1 node layer0_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.weight[0,1] target -0.625 realised -0.625
mw2 node layer0_1_p vdd vdd generic180_p w=1e-06 l=5e-06 m=5
* readout.0: pedestal of its sources target -0.375 realised -0.375
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=3
.ends row_readout_0

* linear row of readout.1
.subckt row_readout_1 node vdd one_n layer0_0_p layer0_1_n zero_p
* readout.bias[1] target 0.25 realised 0.25
mw0 node one_n 0 0 generic180_n w=1e-06 l=5e-06 m=2
* readout.weight[1,0] target -0.375 realised -0.375
mw1 node layer0_0_p vdd vdd generic180_p w=1e-06 l=5e-06 m=3
* readout.weight[1,1] target 1.125 realised 1.125
mw2 node layer0_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=9
* readout.1: pedestal of its sources target -0.75 realised -0.75
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=6
.ends row_readout_1

* linear row of readout.2
.subckt row_readout_2 node vdd one_p layer0_0_n layer0_1_n zero_p
* readout.bias[2] target -0.5 realised -0.5
mw0 node one_p vdd vdd generic180_p w=1e-06 l=5e-06 m=4
* readout.weight[2,0] target 0.5 realised 0.5
mw1 node layer0_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=4
* readout.weight[2,1] target 0.75 realised 0.75
mw2 node layer0_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=6
* readout.2: pedestal of its sources target -1.25 realised -1.25
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=10
.ends row_readout_2

* the whole network
.subckt network vdd resetb clk0 clkb0 in_0_p in_1_p one_p zero_p bias_thresh_0 bias_width_0 bias_gain_0
+ bias_pedestal_0 bias_thresh_1 bias_width_1 readout_0 readout_1 readout_2
xdiode_in_0 in_0_p vdd input_diode_8
xrails_in_0 in_0_p in_0_n vdd signal_rails_8
xdiode_in_1 in_1_p vdd input_diode_8
xrails_in_1 in_1_p in_1_n vdd signal_rails_8
xdiode_one one_p vdd input_diode_8
xrails_one one_p one_n vdd signal_rails_8
xdiode_zero zero_p vdd input_diode_64
xrow_hidden_0 hidden_0_p vdd in_0_n in_1_p one_n zero_p row_hidden_0
xrelu_hidden_0 hidden_0_p vdd relu_diode
xrails_hidden_0 hidden_0_p hidden_0_n vdd signal_rails_8
xrow_hidden_1 hidden_1_p vdd in_0_n in_1_n zero_p row_hidden_1
xrelu_hidden_1 hidden_1_p vdd relu_diode
xrails_hidden_1 hidden_1_p hidden_1_n vdd signal_rails_8
xrow_hidden_2 hidden_2_p vdd in_0_p in_1_n one_p zero_p row_hidden_2
xrelu_hidden_2 hidden_2_p vdd relu_diode
xrails_hidden_2 hidden_2_p hidden_2_n vdd signal_rails_8
xrow_layer0_0 layer0_0_cand vdd one_n hidden_0_n hidden_1_n hidden_2_p row_layer0_0
xcand_layer0_0 layer0_0_cand vdd candidate_diode
xbias_thresh_0 bias_thresh_0 bias_diode
xbias_width_0 bias_width_0 bias_diode
xbias_gain_0 bias_gain_0 bias_diode
* layer0.0: rise 0.58 fall 0.3 level 1
xcell_layer0_0 layer0_0_cand bias_thresh_0 bias_width_0 bias_gain_0 layer0_0_p clk0 clkb0 resetb vdd
+ schmitt_clocked
xbias_pedestal_0 bias_pedestal_0 bias_diode
xpedestal_layer0_0 layer0_0_p bias_pedestal_0 pedestal_sink
xrails_layer0_0 layer0_0_p layer0_0_n vdd signal_rails_8
xrow_layer0_1 layer0_1_cand vdd one_p hidden_0_p hidden_1_n hidden_2_n row_layer0_1
xcand_layer0_1 layer0_1_cand vdd candidate_diode
xbias_thresh_1 bias_thresh_1 bias_diode
xbias_width_1 bias_width_1 bias_diode
* layer0.1: rise 0.55 fall 0.15 level 1
xcell_layer0_1 layer0_1_cand bias_thresh_1 bias_width_1 bias_gain_0 layer0_1_p clk0 clkb0 resetb vdd
+ schmitt_clocked
xpedestal_layer0_1 layer0_1_p bias_pedestal_0 pedestal_sink
xrails_layer0_1 layer0_1_p layer0_1_n vdd signal_rails_8
xrow_readout_0 readout_0 vdd one_n layer0_0_n layer0_1_p zero_p row_readout_0
xrow_readout_1 readout_1 vdd one_n layer0_0_p layer0_1_n zero_p row_readout_1
xrow_readout_2 readout_2 vdd one_p layer0_0_n layer0_1_n zero_p row_readout_2
.ends network
