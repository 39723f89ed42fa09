#!/bin/sh
# 24 of 50 files may go (160700 bytes); nothing was deleted.
# Read it, then run it in the folder that was PATH. It stops at the first file that it cannot delete.
set -eu
rm -- ./125c88b9401f9252baa1b39e412cc4b8/chk-14/23e9e375-ccc8-488e-a06a-3a092e365ebe  # 1052 bytes, torn
rm -- ./125c88b9401f9252baa1b39e412cc4b8/shared/4a06f12b-2931-409a-ae78-8629c4af91af  # 21242 bytes, orphan
rm -- ./125c88b9401f9252baa1b39e412cc4b8/shared/e4539b3b-03c0-416b-8104-6cd6e7e9a6de  # 2032 bytes, orphan
rm -- ./125c88b9401f9252baa1b39e412cc4b8/shared/fdd92252-648f-48be-b3ed-958b8ecfd61f  # 1424 bytes, orphan
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-5/_metadata  # 5825 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-5/c98d896b-0109-4d5b-b150-4fab05fa6c7d  # 1052 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-5/d8ca8a04-bb13-4cd0-819f-edd5624cc719  # 1052 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-6/372e6702-c3ba-4532-842c-d89624f8eb85  # 1052 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-6/_metadata  # 5690 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-6/b14ef492-af37-43af-934c-0fe0838b3cc4  # 1052 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/chk-8/ee71809e-5bb2-4ead-adb3-bb8c45750a6f  # 1052 bytes, torn
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/02b7705e-e957-4ecd-a935-c6f58e3fe96b  # 21242 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/3acdbb1f-b987-449c-9d43-653e702e21b3  # 21242 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/57b05fd0-82cf-4e6b-aba4-87ee600e41f8  # 21242 bytes, orphan
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/7908d714-30e4-4257-8c3d-dd7aaa135599  # 1568 bytes, orphan
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/8a4ed88f-3e34-4ea3-9245-d55a9f7df64f  # 1139 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/abf7e435-adc2-4215-b4a3-355ab18571ed  # 1636 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/ac9ed4c4-fac5-4e1d-b59b-e6236244d756  # 1633 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/af04d3c9-dde6-47d8-9983-e79998bdcc60  # 1282 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/b030cdde-998a-434e-83c9-0ceb2c01a960  # 1648 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/b2fdc64c-bd5e-4177-a7ef-c0ba1b4468dd  # 1646 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/c609ae0f-b86d-4aad-8134-b9bc24ceacda  # 21242 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/e40bac09-ce32-4539-ad3c-a8cad8ca0e29  # 21242 bytes, broken
rm -- ./aba3f4bfac52eaa92f2d9f59dce4f476/shared/ec44537d-494e-4e40-b2ed-32cc1b8daed9  # 1413 bytes, orphan
