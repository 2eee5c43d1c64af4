"""The circuit cells: functions of sizes and technology that return subcircuits. One cell, one file."""
