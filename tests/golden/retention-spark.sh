#!/bin/sh
# 34 of 84 files may go (6155 bytes); nothing was deleted.
# Read it, then run it in the folder that was PATH. It stops at the first file that it cannot delete.
set -eu
rm -- ./ck/commits/.0.crc  # 12 bytes, obsolete
rm -- ./ck/commits/0  # 29 bytes, obsolete
rm -- ./ck/commits/.1.crc  # 12 bytes, obsolete
rm -- ./ck/commits/1  # 29 bytes, obsolete
rm -- ./ck/commits/.2.crc  # 12 bytes, obsolete
rm -- ./ck/commits/2  # 29 bytes, obsolete
rm -- ./ck/commits/.3.crc  # 12 bytes, obsolete
rm -- ./ck/commits/3  # 29 bytes, obsolete
rm -- ./ck/commits/.4.crc  # 12 bytes, obsolete
rm -- ./ck/commits/4  # 29 bytes, obsolete
rm -- ./ck/offsets/.0.crc  # 20 bytes, obsolete
rm -- ./ck/offsets/0  # 1170 bytes, obsolete
rm -- ./ck/offsets/.1.crc  # 20 bytes, obsolete
rm -- ./ck/offsets/1  # 1170 bytes, obsolete
rm -- ./ck/offsets/.2.crc  # 20 bytes, obsolete
rm -- ./ck/offsets/2  # 1170 bytes, obsolete
rm -- ./ck/offsets/.3.crc  # 20 bytes, obsolete
rm -- ./ck/offsets/3  # 1170 bytes, obsolete
rm -- ./ck/state/0/0/.1.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/0/1.delta  # 172 bytes, obsolete
rm -- ./ck/state/0/0/.2.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/0/2.delta  # 163 bytes, obsolete
rm -- ./ck/state/0/0/.3.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/0/3.delta  # 186 bytes, obsolete
rm -- ./ck/state/0/0/.4.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/0/4.delta  # 182 bytes, obsolete
rm -- ./ck/state/0/1/.1.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/1/1.delta  # 84 bytes, obsolete
rm -- ./ck/state/0/1/.2.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/1/2.delta  # 85 bytes, obsolete
rm -- ./ck/state/0/1/.3.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/1/3.delta  # 114 bytes, obsolete
rm -- ./ck/state/0/1/.4.delta.crc  # 12 bytes, obsolete
rm -- ./ck/state/0/1/4.delta  # 108 bytes, obsolete
