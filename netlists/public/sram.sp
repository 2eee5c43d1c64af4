* Six-transistor SRAM cell: its static noise margin while it holds, or with word=supply while it is read.
* Two equal noise sources stand in series with the gates of both inverters, so that they push against the state q = 1.
* They rise until the cell flips, then fall until it flips back: the lower of both voltages is the margin.
* Written anew from E. Seevinck, F. J. List and J. Lohstroh, Static-noise margin analysis of MOS SRAM cells, IEEE J.
* Solid-State Circuits 22 (1987) 748.
.param supply=0.5 top=0.3 word=0
vdd vdd 0 {supply}
vwl wl 0 {word}
vbl bl 0 {supply}
vblb blb 0 {supply}
mn1 q a 0 0 generic180_n w=2u l=2u m=2
mp1 q a vdd vdd generic180_p w=2u l=4u
mn2 qb b 0 0 generic180_n w=2u l=2u m=2
mp2 qb b vdd vdd generic180_p w=2u l=4u
ma1 bl wl q 0 generic180_n w=2u l=2u
ma2 blb wl qb 0 generic180_n w=2u l=2u
vn1 a qb pwl(0 {-top} 2 {top} 4 {-top})
vn2 q b pwl(0 {-top} 2 {top} 4 {-top})
.options reltol=1e-8
.tran 0.25m 4
.meas tran one find v(a,qb) when v(q)=v(qb) fall=1
.meas tran zero find v(qb,a) when v(q)=v(qb) rise=1
.meas tran margin param='min(one,zero)'
.end
