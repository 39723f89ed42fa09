kcat -C -b "$BOOTSTRAP_SERVERS" -t orders -p 0 -o 1043 -e
kcat -C -b "$BOOTSTRAP_SERVERS" -t payments -p 0 -o 1044 -e
