resource "google_cloud_tasks_queue" "emails" {
  name     = "emails"
  location = "europe-west1"

  retry_config {
    max_attempts       = 100
    max_retry_duration = "3600s"
    min_backoff        = "5s"
    max_backoff        = "300s"
    max_doublings      = 5
  }
}
