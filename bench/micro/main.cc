// holdfast-micro-bench: the benchmarks of single parts, in the files beside this one.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
