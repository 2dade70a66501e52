package reader

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8slab/lab/event"
)

// journal is 50 MB as a kubelet in trouble writes them: mostly noise, every tenth line a sign of something.
func journal() []byte {
	const size = 50 << 20
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Jun 01 10:%02d:%02d w1 kubelet[900]: ", i/60%60, i%60)
		if i%10 == 0 {
			b.WriteString(`E0601 10:00:05.300001     900 kubelet.go:2855] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"` + "\n")
			continue
		}
		fmt.Fprintf(&b, `I0601 10:00:05.300001     900 reconciler_common.go:247] "operationExecutor.VerifyControllerAttachedVolume started for volume \"kube-proxy\" (UniqueName: \"kubernetes.io/configmap/%08d\") pod=\"kube-system/kube-proxy-abcde\""`+"\n", i)
	}
	return b.Bytes()
}

// BenchmarkJudge reports the speed over 50 MB; what it allocates does not depend on that size.
func BenchmarkJudge(b *testing.B) {
	text := journal()
	words() // compiled once for the life of a program
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if found, err := Judge(bytes.NewReader(text), "journal", event.Redact); err != nil || len(found) == 0 {
			b.Fatal(found, err)
		}
	}
}

// TestMemoryIsBounded judges ten times as much text and expects it to allocate hardly more.
func TestMemoryIsBounded(t *testing.T) {
	text := journal()[:5<<20]
	allocated := func(times int) int64 {
		return int64(testing.AllocsPerRun(1, func() {
			if _, err := Judge(bytes.NewReader(bytes.Repeat(text, 1)[:len(text)/10*times]), "journal", event.Redact); err != nil {
				t.Fatal(err)
			}
		}))
	}
	if little, much := allocated(1), allocated(10); much > 40*little {
		t.Errorf("%d allocations for a tenth, %d for all", little, much)
	}
}

// TestRepetitionIsCheap judges one long line that says the same few things over and over, which must not take the square of its length.
func TestRepetitionIsCheap(t *testing.T) {
	for _, unit := range []string{"x509: certificate signed by unknown authority ", "took too long ", "dial unix ", "error: ",
		"[warning "} {
		began := time.Now()
		if _, err := Judge(strings.NewReader(strings.Repeat(unit, 1<<20/len(unit))), "line", event.Redact); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("1 MB of %q took %v", unit, took)
		}
	}
}
