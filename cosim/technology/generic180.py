"""generic180: the built-in process, so that everything runs with no foundry data.

An invented 180 nm-class BSIM4 card of this project (`models/devices/generic180.lib` documents its subthreshold
parameters). The mismatch coefficients are those of the class: open 180 nm kits publish 4.7 to 5.1 mV um for their
3.3 V devices.
"""

from cosim.resources import device_model_path
from cosim.technology.types import DeviceModel, Geometry, Sizing, Technology


def generic180() -> Technology:
    """The built-in technology."""
    return Technology(
        name="generic180",
        summary="invented 180 nm-class process with 3.3 V devices at 1.8 V",
        device_file=device_model_path("generic180.lib"),
        nfet=DeviceModel("generic180_n", a_vt=5.0e-9, a_beta=5e-9, slope_factor=1.32),
        pfet=DeviceModel("generic180_p", a_vt=5.0e-9, a_beta=5e-9, slope_factor=1.31),
        sizing=Sizing(
            mirror_n=Geometry(1e-6, 5e-6),
            mirror_p=Geometry(1e-6, 5e-6),
            cell_n=Geometry(5e-6, 5e-6),
            cell_p=Geometry(5e-6, 5e-6),
            latch_switch=Geometry(1e-6, 1e-6),
            sample_switch=Geometry(0.4e-6, 0.4e-6),
        ),
        grid=5e-9,
        supply=1.8,
        supply_max=3.3,
        celsius=27.0,
        current_min=5e-12,
        current_max=20e-9,
    )
