* Six-transistor SRAM cell while it is read: its N-curve, the current that a source must drive into the node q as it
* moves it from 0 to the supply. At its first zero the cell is at rest, behind its second one it flips. Between them lie
* the voltage that a disturbance may have, and the largest current.
* Written anew from E. Grossar, M. Stucchi, K. Maex and W. Dehaene, Read stability and write-ability analysis of SRAM
* cells for nanometer technologies, IEEE J. Solid-State Circuits 41 (2006) 2577.
.param supply=0.65
vdd vdd 0 {supply}
vwl wl 0 {supply}
vbl bl 0 {supply}
vblb blb 0 {supply}
mn1 q qb 0 0 generic180_n w=2u l=2u m=2
mp1 q qb vdd vdd generic180_p w=2u l=4u
mn2 qb q 0 0 generic180_n w=2u l=2u m=2
mp2 qb q vdd vdd generic180_p w=2u l=4u
ma1 bl wl q 0 generic180_n w=2u l=2u
ma2 blb wl qb 0 generic180_n w=2u l=2u
vq q 0 0
.dc vq 0 {supply} 2m
.meas dc rest when i(vq)=0 cross=1
.meas dc flip when i(vq)=0 cross=2
.meas dc margin param='flip-rest'
.meas dc push min i(vq)
.meas dc current param='-push'
.end
