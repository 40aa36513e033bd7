"""One profile for every property test: no deadline, because two busy cores are slow at random."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "compact",
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example],
)
settings.load_profile("compact")
