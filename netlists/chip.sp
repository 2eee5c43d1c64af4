* chip on generic180

* bias diode of 16 unit devices: the current of code 16 into line
.subckt level_diode_16 line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=16
.ends level_diode_16

* converter: a code of 5 bits draws its current from out
.subckt converter_5 out level rest bit0 bit1 bit2 bit3 bit4
ms0 out bit0 a0 0 generic180_n w=1e-06 l=1e-06 m=1
msource0 a0 level 0 0 generic180_n w=5e-06 l=5e-06 m=1
ms1 out bit1 a1 0 generic180_n w=1e-06 l=1e-06 m=1
msource1 a1 level 0 0 generic180_n w=5e-06 l=5e-06 m=2
ms2 out bit2 a2 0 generic180_n w=1e-06 l=1e-06 m=1
msource2 a2 level 0 0 generic180_n w=5e-06 l=5e-06 m=4
ms3 out bit3 a3 0 generic180_n w=1e-06 l=1e-06 m=1
msource3 a3 level 0 0 generic180_n w=5e-06 l=5e-06 m=8
ms4 out bit4 a4 0 generic180_n w=1e-06 l=1e-06 m=1
msource4 a4 level 0 0 generic180_n w=5e-06 l=5e-06 m=16
mrest out rest 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends converter_5

* replica of the inlet of an average: I_idle of line makes low
.subckt average_bias line low vdd
my y y vdd vdd generic180_p w=5e-06 l=5e-06 m=8
mmp low low y vdd generic180_p w=5e-06 l=5e-06 m=1
midle low line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends average_bias

* average: samples of a signed current on a capacitor
.subckt average y low sample sampleb begin lift mean vdd
my y y vdd vdd generic180_p w=5e-06 l=5e-06 m=8
mmp np low y vdd generic180_p w=5e-06 l=5e-06 m=1
mnp np np 0 0 generic180_n w=5e-06 l=5e-06 m=8
mup a y vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mup_on mean sampleb a vdd generic180_p w=1e-06 l=1e-06 m=1
mdown b np 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdown_on mean sample b 0 generic180_n w=1e-06 l=1e-06 m=1
mbegin mean begin 0 0 generic180_n w=1e-06 l=1e-06 m=1
cmean mean 0 2.66666666667e-12
clift mean lift 1.33333333333e-12
.ends average

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

* decision: which of 3 averaged currents is the largest
.subckt decision_3 idle bias sample sampleb begin lift y0 y1 y2 line0 line1 line2 vdd
xlow idle low vdd average_bias
mtail tail bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
xaverage0 y0 low sample sampleb begin lift mean0 vdd average
mfollow0 p0 mean0 tail 0 generic180_n w=5e-06 l=5e-06 m=1
mp0 p0 p0 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
min0 in0 p0 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mout0 out0 out0 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mline0 line0 out0 vdd vdd generic180_p w=5e-06 l=5e-06 m=2
msink0 line0 bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
xaverage1 y1 low sample sampleb begin lift mean1 vdd average
mfollow1 p1 mean1 tail 0 generic180_n w=5e-06 l=5e-06 m=1
mp1 p1 p1 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
min1 in1 p1 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mout1 out1 out1 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mline1 line1 out1 vdd vdd generic180_p w=5e-06 l=5e-06 m=2
msink1 line1 bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
xaverage2 y2 low sample sampleb begin lift mean2 vdd average
mfollow2 p2 mean2 tail 0 generic180_n w=5e-06 l=5e-06 m=1
mp2 p2 p2 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
min2 in2 p2 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mout2 out2 out2 vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mline2 line2 out2 vdd vdd generic180_p w=5e-06 l=5e-06 m=2
msink2 line2 bias 0 0 generic180_n w=5e-06 l=5e-06 m=1
xwinner bias in0 in1 in2 out0 out1 out2 winner_3
.ends decision_3

* bias tree: coarse and fine line
.subckt tree in coarse fine vdd
min in in 0 0 generic180_n w=1e-06 l=5e-06 m=64
mcoarse_copy coarse in 0 0 generic180_n w=1e-06 l=5e-06 m=16
mcoarse_diode coarse coarse vdd vdd generic180_p w=1e-06 l=5e-06 m=32
mfine_copy fine in 0 0 generic180_n w=1e-06 l=5e-06 m=1
mfine_diode fine fine vdd vdd generic180_p w=1e-06 l=5e-06 m=64
.ends tree

* source of a bias pin: 30 coarse units and 5 trim bits
.subckt tree_source_30 pin coarse fine t0 t1 t2 t3 t4 vdd
mcoarse pin coarse vdd vdd generic180_p w=1e-06 l=5e-06 m=30
mfine0 a0 fine vdd vdd generic180_p w=1e-06 l=5e-06 m=1
mon0 pin t0 a0 vdd generic180_p w=1e-06 l=1e-06 m=1
mfine1 a1 fine vdd vdd generic180_p w=1e-06 l=5e-06 m=2
mon1 pin t1 a1 vdd generic180_p w=1e-06 l=1e-06 m=1
mfine2 a2 fine vdd vdd generic180_p w=1e-06 l=5e-06 m=4
mon2 pin t2 a2 vdd generic180_p w=1e-06 l=1e-06 m=1
mfine3 a3 fine vdd vdd generic180_p w=1e-06 l=5e-06 m=8
mon3 pin t3 a3 vdd generic180_p w=1e-06 l=1e-06 m=1
mfine4 a4 fine vdd vdd generic180_p w=1e-06 l=5e-06 m=16
mon4 pin t4 a4 vdd generic180_p w=1e-06 l=1e-06 m=1
.ends tree_source_30
