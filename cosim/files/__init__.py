"""Files: what is written is whole and on the disk, a folder has one owner, and what is kept carries a checksum."""
