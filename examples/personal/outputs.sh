# The tables beside this file, of the two studies: sh outputs.sh DIGITS CIFAR10
set -e
for name in fedavg-ft solo fedavg; do
    fltrain table "$1" --where tuned=tuned --by algorithm --show parties,worst,mb --against $name > digits-$name.txt
    fltrain table "$2" --by algorithm --show parties,worst,mb --against $name > cifar10-$name.txt
done
