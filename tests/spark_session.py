"""Spark on this machine, for the tests that need it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engines import nothing_left_running


def java_version() -> int:
    """The major version of the Java that Spark would start; 0 where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


@contextmanager
def spark_session() -> Iterator[Any]:
    """A session that takes its Java with it when it ends."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.sql.session.timeZone": "UTC",
    }
    with nothing_left_running():
        builder = SparkSession.builder.master("local[2,4]")  # 2 cores, 4 attempts at a task
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
        gateway = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with its input
        gateway.proc.wait(timeout=60)
        SparkContext._gateway = SparkContext._jvm = None
