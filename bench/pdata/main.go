// Unmarshals files of OTLP payloads with the OpenTelemetry Collector's own unmarshaler, over and
// over, and prints the data points per second of CPU time of each file as JSON.
package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"syscall"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

const turnSeconds = 0.3

func main() {
	rates := map[string]float64{}
	for _, path := range os.Args[1:] {
		rates[path] = rate(payloads(path))
	}
	if err := json.NewEncoder(os.Stdout).Encode(rates); err != nil {
		panic(err)
	}
}

// rate is that of the best pass over the payloads in a turn.
func rate(payloads [][]byte) float64 {
	unmarshaler := pmetric.ProtoUnmarshaler{}
	best, end := 0.0, cpuSeconds()+turnSeconds
	for start := cpuSeconds(); start < end; start = cpuSeconds() {
		points := 0
		for _, payload := range payloads {
			metrics, err := unmarshaler.UnmarshalMetrics(payload)
			if err != nil {
				panic(err)
			}
			points += metrics.DataPointCount()
		}
		best = max(best, float64(points)/(cpuSeconds()-start))
	}
	return best
}

// payloads reads a file of payloads, each behind its length in four bytes, big-endian.
func payloads(path string) [][]byte {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var found [][]byte
	for len(data) > 0 {
		size := binary.BigEndian.Uint32(data)
		found = append(found, data[4:4+size])
		data = data[4+size:]
	}
	return found
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
