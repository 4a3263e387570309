# Queues and subscriptions, with a value of each kind.
resource "google_cloud_tasks_queue" "q" {
  name  = "mail" // as in YAML
  retry_config {
    max_attempts       = -1
    max_retry_duration = "60.5s"
    min_backoff        = "1${var.unit}"
  }
  labels = { a = 1.5e3, "b" : null, (c) = [true, -2, "\u00e9$${x}"], in = 4 }
}
resource "google_pubsub_subscription" "s" {
  topic = google_pubsub_topic.mail.id
  retry_policy { minimum_backoff = "5s" }
  dynamic "dead_letter_policy" {
    for_each = var.dead ? [1] : []
    content { max_delivery_attempts = 3600 * 2 }
  }
  filter = <<EOT
text
  EOT
}
