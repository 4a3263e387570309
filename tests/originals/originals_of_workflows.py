"""The workflow engines, job frameworks and cloud services."""

from tests.originals.comparison import documented

# Too large to be installed, or in other languages; each was run by hand.
documented("active-job", "`ActiveJob::Exceptions`, Rails 8.2.0.alpha, run in Ruby 3.1")
documented("airflow", "`TaskInstance.next_retry_datetime`, Airflow 3.3.2, run")
documented("argo", "`processNodeRetries`, Argo Workflows, August 2026")
documented("dagster", "`calculate_delay`, Dagster 1.13.29, run")
documented("oban", "`Oban.Backoff`, Oban 2.23.0, run in Elixir 1.14")
documented("prefect", "`Task` and its engine, Prefect 3.9.1, run")

documented("cloud-tasks", "`RetryConfig`, google-cloud-tasks 2.26.0")
documented("step-functions", "Step Functions Developer Guide, 2026")
