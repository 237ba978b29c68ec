# What stands beside this file, of the study: sh outputs.sh FOLDER, where paper.tex lies
set -e
fltrain table "$1" --by algorithm --columns split > table.txt
fltrain table "$1" --by algorithm --columns split --test > tests.txt
fltrain table "$1" --by algorithm --columns split --test --into paper.tex
fltrain figure curves "$1" --panels split -o curves.svg
fltrain figure parties "$1" --panels split -o parties.svg
fltrain figure skew "$1" --panels dataset -o skew.svg
fltrain figure pairs "$1" --panels split -o pairs.svg
fltrain figure ranks "$1" --panels split -o ranks.svg
fltrain report "$1" --by algorithm --columns split -o report.html
