* testbench of network.sp; what it should show: expected.csv
.include 'network.sp'
.include 'devices.lib'
xnetwork vdd resetb clk0 clkb0 in_0_p in_1_p one_p zero_p bias_thresh_0 bias_width_0 bias_gain_0
+ bias_pedestal_0 bias_thresh_1 bias_width_1 readout_0 readout_1 readout_2 network
vdd vdd 0 dc 1.8e+00
vground vdd vground dc 5.39839937e-01
vresetb resetb 0 pwl(0e+00 0e+00 3.5e-03 0e+00 3.6e-03 1.8e+00)
iunit one_p 0 dc 1e-09
ipedestal zero_p 0 dc 4e-10
vclk0 clk0 0 pwl(0e+00 0e+00 4.8e-03 0e+00 4.9e-03 1.8e+00 1.2e-02 1.8e+00 1.21e-02 0e+00 1.47e-02 0e+00
+ 1.48e-02 1.8e+00 2.2e-02 1.8e+00 2.21e-02 0e+00 2.47e-02 0e+00 2.48e-02 1.8e+00 3.2e-02 1.8e+00 3.21e-02
+ 0e+00 3.47e-02 0e+00 3.48e-02 1.8e+00 4.2e-02 1.8e+00 4.21e-02 0e+00 4.47e-02 0e+00 4.48e-02 1.8e+00 5.2e-02
+ 1.8e+00 5.21e-02 0e+00 5.47e-02 0e+00 5.48e-02 1.8e+00 6.2e-02 1.8e+00 6.21e-02 0e+00 6.47e-02 0e+00
+ 6.48e-02 1.8e+00 7.2e-02 1.8e+00 7.21e-02 0e+00 7.47e-02 0e+00 7.48e-02 1.8e+00 8.2e-02 1.8e+00 8.21e-02
+ 0e+00 8.47e-02 0e+00 8.48e-02 1.8e+00)
vclkb0 clkb0 0 pwl(0e+00 1.8e+00 4.8e-03 1.8e+00 4.9e-03 0e+00 1.2e-02 0e+00 1.21e-02 1.8e+00 1.47e-02 1.8e+00
+ 1.48e-02 0e+00 2.2e-02 0e+00 2.21e-02 1.8e+00 2.47e-02 1.8e+00 2.48e-02 0e+00 3.2e-02 0e+00 3.21e-02 1.8e+00
+ 3.47e-02 1.8e+00 3.48e-02 0e+00 4.2e-02 0e+00 4.21e-02 1.8e+00 4.47e-02 1.8e+00 4.48e-02 0e+00 5.2e-02 0e+00
+ 5.21e-02 1.8e+00 5.47e-02 1.8e+00 5.48e-02 0e+00 6.2e-02 0e+00 6.21e-02 1.8e+00 6.47e-02 1.8e+00 6.48e-02
+ 0e+00 7.2e-02 0e+00 7.21e-02 1.8e+00 7.47e-02 1.8e+00 7.48e-02 0e+00 8.2e-02 0e+00 8.21e-02 1.8e+00 8.47e-02
+ 1.8e+00 8.48e-02 0e+00)
ibias_thresh_0 vdd bias_thresh_0 dc 5.91290477788e-10
ibias_width_0 vdd bias_width_0 dc 2.86009980049e-10
ibias_gain_0 vdd bias_gain_0 dc 9.88503780763e-10
ibias_pedestal_0 vdd bias_pedestal_0 dc 4.89220050856e-11
ibias_thresh_1 vdd bias_thresh_1 dc 5.61144224082e-10
ibias_width_1 vdd bias_width_1 dc 4.07799129776e-10
vreadout_0 vground readout_0 dc 0e+00
vreadout_1 vground readout_1 dc 0e+00
vreadout_2 vground readout_2 dc 0e+00
iin_0_p in_0_p 0 pwl(0e+00 5e-11 1.5e-02 5e-11 1.51e-02 3.83333333333e-10 2.5e-02 3.83333333333e-10 2.51e-02
+ 7.16666666667e-10 3.5e-02 7.16666666667e-10 3.51e-02 1.05e-09 4.5e-02 1.05e-09 4.51e-02 5e-11 5.5e-02 5e-11
+ 5.51e-02 3.83333333333e-10 6.5e-02 3.83333333333e-10 6.51e-02 7.16666666667e-10 7.5e-02 7.16666666667e-10
+ 7.51e-02 1.05e-09)
iin_1_p in_1_p 0 pwl(0e+00 5e-11 5e-03 5e-11 5.1e-03 3.83333333333e-10 1.5e-02 3.83333333333e-10 1.51e-02
+ 7.16666666667e-10 2.5e-02 7.16666666667e-10 2.51e-02 1.05e-09 3.5e-02 1.05e-09 3.51e-02 5e-11 4.5e-02 5e-11
+ 4.51e-02 3.83333333333e-10 5.5e-02 3.83333333333e-10 5.51e-02 7.16666666667e-10 6.5e-02 7.16666666667e-10
+ 6.51e-02 1.05e-09 7.5e-02 1.05e-09 7.51e-02 5e-11)
* runlvl=0: at any other level HSPICE replaces most of these tolerances by its own
.option runlvl=0 gmin=1e-16 gmindc=1e-16 abstol=1e-15 absmos=1e-15 vntol=1e-06 chgtol=1e-17 reltol=1e-04
+ reli=1e-04 relmos=1e-04 trtol=2e+01 method=trap mu=4e-01 bypass=0 delmax=2e-04
.option post probe
.temp 2.7e+01
.probe tran v(xnetwork.xcell_layer0_0.latch) v(xnetwork.xcell_layer0_1.latch) i(vreadout_0) i(vreadout_1)
+ i(vreadout_2) i(vdd) i(vground) i(vclk0) i(vclkb0)
.tran 2e-04 8.5e-02
.end
