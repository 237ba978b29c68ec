# The tables beside this file, of the study: sh outputs.sh FOLDER
set -e
fltrain table "$1" --by algorithm --columns lr --against fedavg --family table > table.txt
fltrain table "$1" --by algorithm --columns lr --metric party_val_accuracy_weighted > validation.txt
