"""What is timed, each as a program: python -m benchmarks.NAME."""
