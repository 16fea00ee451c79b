"""The harness of bench/run: installs the fetchers, lets them loose on a simulated web, and writes down what it cost."""
