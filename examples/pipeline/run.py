"""A declarative pipeline on a topic.

`spark-pipelines run` keeps the tables of transformations/ up to date: streaming tables that take each record of a topic
once, materialised views of the topic and of the broker's files, SQL on top of them, and a topic that is written exactly
once. This fills a topic, runs the pipeline, fills it further, runs it again and shows what the tables hold. It needs
PySpark 4.1 or newer, with its own extra: `pip install 'tagwire[spark]' 'pyspark[pipelines]'`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pyspark

from tagwire.broker import Broker
from tagwire.client import Producer, Reader

HERE = Path(__file__).parent
SPARK = Path(pyspark.__file__).parent


def fill(bootstrap: str) -> None:
    with Producer(bootstrap) as producer:
        for number in range(1000):
            flight = {"carrier": "UA" if number % 4 else "DL", "origin": "EWR", "delay": number % 60}
            producer.send("flights", json.dumps(flight).encode())


def run_pipeline(project: Path, environment: dict[str, str]) -> None:
    command = [str(SPARK / "bin" / "spark-pipelines"), "run"]
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        sys.exit(f"spark-pipelines failed:\n{done.stdout}{done.stderr}")
    print("\n".join(line for line in done.stdout.splitlines() if line.endswith("COMPLETED.")))


print("PySpark", pyspark.__version__)
with tempfile.TemporaryDirectory() as folder, Broker(f"{folder}/broker") as broker:
    project = Path(folder, "project")
    shutil.copytree(HERE, project)
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/flights-pipeline", (project / "storage").as_uri()))
    environment = {
        **os.environ,
        "FLIGHTS_BOOTSTRAP": broker.bootstrap,
        "FLIGHTS_LOG": f"{folder}/broker",
        "PYSPARK_PYTHON": sys.executable,  # the pipeline's server runs this Python: Spark looks for formats there
        "SPARK_HOME": str(SPARK),
        "SPARK_CONF_DIR": str(project / "conf"),
    }
    rows = []
    for _ in range(2):
        fill(broker.bootstrap)
        run_pipeline(project, environment)
        tables = {place.name: pq.read_table(place) for place in sorted(project.glob("spark-warehouse/*"))}
        with Reader(broker.bootstrap, "late_flights", stop_at_end=True, isolation="read_committed") as late:
            written = sum(batch.num_rows for batch in late)
        rows.append({name: table.num_rows for name, table in tables.items()} | {"late_flights": written})
        print(rows[-1])

    offsets = tables["departures"]["offset"].to_pylist()
    for name in ("delays", "records_of_partitions"):
        print(name, tables[name].to_pylist())

assert sorted(offsets) == list(range(2000))  # each record once, in two runs
assert [(found["departures"], found["origins"], found["late_flights"]) for found in rows] == [
    (1000, 1000, 144),
    (2000, 2000, 288),
]
assert tables["records_of_partitions"].to_pylist() == [{"partition": 0, "count": 2000}]
