* Winner-take-all of two currents: by how much one must be larger to win, its offset.
* m1 m2 share the gate line c, whose voltage follows the larger input; m3 m4 steer the bias current to the winner. The
* input of m1 rises from 0.4 to 1.8 of that of m2 in 100 ms, and falls again. The offset is the mean of the two inputs at
* which both outputs are equal, so that it does not contain what they lag behind the input, 0.4 % each way.
* Written anew from J. Lazzaro, S. Ryckebusch, M. A. Mahowald and C. A. Mead, Winner-take-all networks of O(n)
* complexity, Advances in Neural Information Processing Systems 1 (1989) 703.
.param supply=1.8 bias=2n level=1n
vdd vdd 0 {supply}
i1 vdd a pwl(0 {0.4*level} 1m {0.4*level} 101m {1.8*level} 201m {0.4*level})
i2 vdd b {level}
m1 a c 0 0 generic180_n w=2u l=2u
m2 b c 0 0 generic180_n w=2u l=2u
m3 o1 a c 0 generic180_n w=2u l=2u
m4 o2 b c 0 generic180_n w=2u l=2u
vo1 vdd o1 0
vo2 vdd o2 0
ib vdd g {bias}
m6 g g 0 0 generic180_n w=2u l=2u
m5 c g 0 0 generic180_n w=2u l=2u
.tran 200u 201m
.meas tran turn when i(vo1)=i(vo2) rise=1
.meas tran back when i(vo1)=i(vo2) fall=1
.meas tran offset param='((turn-1m)*14-0.6+0.8-(back-101m)*14)/2'
.meas tran won find i(vo1) at=101m
.end
