"""The workflow engines, job frameworks and cloud services."""

from tests.originals.comparison import documented, run_by_hand

# Too large to be installed, or in other languages; each was run by hand.
run_by_hand("active-job", "`ActiveJob::Exceptions`, Rails 8.2.0.alpha in Ruby 3.1")
run_by_hand("airflow", "`TaskInstance.next_retry_datetime`, Airflow 3.3.2")
documented("argo", "`processNodeRetries`, Argo Workflows, August 2026")
run_by_hand("dagster", "`calculate_delay`, Dagster 1.13.29")
run_by_hand("oban", "`Oban.Backoff`, Oban 2.23.0 in Elixir 1.14")
run_by_hand("prefect", "`Task` and its engine, Prefect 3.9.1")

documented("cloud-tasks", "`RetryConfig`, google-cloud-tasks 2.26.0")
documented("step-functions", "`RetryProps`, AWS CDK 2")
