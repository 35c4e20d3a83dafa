# Builds the cases of a client in Go, for its run.sh to source: sets `python`, and `cache`, the folder of what was built.
python=${PYTHON:-../../../.venv/bin/python}
cache=$(cd ../../.. && pwd)/.cache/clients/$(basename "$PWD")
command -v go >/dev/null || { echo "NOT RUN: go is not on the PATH"; exit; }
mkdir -p "$cache"
for attempt in 1 2 3; do
    go mod download >&2 && break
    if ((attempt == 3)); then echo "NOT RUN: the modules could not be fetched"; exit; fi
    sleep 5
done
go build -o "$cache/client" .
