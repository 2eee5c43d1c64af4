* Current reference in weak inversion: m2, eight times m1, has the same gate and drain current, so that its source rests
* U_T ln 8 higher, on a resistor. At zero current the circuit is at rest as well; .nodeset leads away from there.
* Written anew from E. Vittoz and J. Fellrath, CMOS analog integrated circuits based on weak inversion operation, IEEE
* J. Solid-State Circuits 12 (1977) 224.
.param supply=1.8 r=10meg
vdd vdd 0 {supply}
m1 b b 0 0 generic180_n w=2u l=2u
m2 p b s 0 generic180_n w=2u l=2u m=8
r1 s 0 {r}
m3 b p vdd vdd generic180_p w=2u l=4u
m4 p p vdd vdd generic180_p w=2u l=4u
m5 out p vdd vdd generic180_p w=2u l=4u
vo out 0 {supply/2}
.nodeset v(b)=0.4 v(p)={supply-0.6}
.op
.meas op ptat find v(s)
.meas op current find i(vo)
.end
