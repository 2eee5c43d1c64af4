"""Names of command-line options for messages of the compiler and of units, which name settings in backquotes instead.

`i_unit`                     --i-unit
`cell=auto`                  --cell auto
`train(epsilon=anneal)`      cosim train --epsilon anneal
"""

import re

FLAGS = {
    name: f"--{flag or name.replace('_', '-')}"
    for name, flag in {
        "around": "with",
        **dict.fromkeys(
            (
                "i_unit",
                "headroom",
                "t_step",
                "tau",
                "cell",
                "saturate",
                "ranges_from",
                "comparator_devices",
                "overrides",
                "netlist",
            )
        ),  # compile
        **dict.fromkeys(("epsilon", "beta", "levels", "range_max", "feedback", "input_levels", "pooling")),  # train
        "technology": None,
    }.items()
}
_SETTING = rf"({'|'.join(FLAGS)})(?:=([^`)]*))?"
_NAMED = re.compile(rf"`(?:(train)\((?:{_SETTING})?\)|{_SETTING})`")


def spell_options(text: str) -> str:
    """Return a message with each setting in backquotes replaced by its option as typed: `i_unit` becomes --i-unit."""

    def typed(found: re.Match[str]) -> str:
        verb, *settings = found.groups()
        name, value = settings[:2] if settings[0] else settings[2:]
        words = (verb and f"cosim {verb}", name and FLAGS[name], value)
        return " ".join(word for word in words if word)

    return _NAMED.sub(typed, text)
