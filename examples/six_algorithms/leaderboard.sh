# The six on a task of the leaderboard, with the rows that each task has: sh leaderboard.sh FOLDER
set -e
fltrain leaderboard plan digits-label-0.1 --algorithm fedavg --algorithm fedprox --algorithm scaffold --algorithm fednova --algorithm feddyn --algorithm solo --algorithm fedavg-ft --algorithm centralised > entry.toml
fltrain study entry.toml --out "$1/entries/six-algorithms"
fltrain leaderboard verify "$1/entries/six-algorithms" --replay 3 --keep "$1/verdicts"
fltrain leaderboard site "$1/entries" --verdicts "$1/verdicts" -o "$1/site"
cp "$1/verdicts/six-algorithms.json" verdict.json
cp "$1/site/digits-label-0.1.html" leaderboard.html
