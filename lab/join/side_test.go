package join

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// sideOf is a watch of w1's join with the token abcdef, in a cluster that looks as given.
func sideOf(t *testing.T, look func() kube.JoinSide, rejects func() (*kube.Rejection, error)) (w *SideWatch, told *[]string) {
	t.Helper()
	begin := time.Now()
	told = new([]string)
	return &SideWatch{
		Node: "w1", TokenID: "abcdef",
		Look: func(context.Context) (kube.JoinSide, error) { return look(), nil },
		Rejects: func(_ context.Context, node string) (*kube.Rejection, error) {
			if node != "w1" {
				t.Errorf("asked for %s", node)
			}
			return rejects()
		},
		Leader: func(context.Context, string) (string, time.Time, error) {
			return "cp1_1", time.Now().Add(-40 * time.Second), nil
		},
		Tell: func(f SideFault) {
			*told = append(*told, string(f.Symptom)+" "+time.Since(begin).String()+" "+f.Evidence)
		},
	}, told
}

func admits() (*kube.Rejection, error) { return nil, nil }

func ownCSR(state string) kube.CSR {
	return kube.CSR{Name: "csr-1", Signer: "kubernetes.io/kube-apiserver-client-kubelet", Requester: "system:bootstrap:abcdef", Node: "w1", State: state}
}

func TestSideWatchNamesAndEnds(t *testing.T) {
	tokens := []string{"abcdef"}
	right := kube.JoinNeed{What: "bootstrap tokens may not", Right: true, Phase: kube.PhaseBootstrapToken}
	later := kube.JoinNeed{What: "kubelets may not", Right: true, Later: true, Phase: kube.PhaseBootstrapToken}
	other := ownCSR("pending")
	other.Requester = "system:bootstrap:zzzzzz"
	tests := []struct {
		name  string
		side  kube.JoinSide
		mends bool
		want  symptom.ID // told of, within 3 s
		ends  time.Duration
		says  string
	}{
		{"nothing", kube.JoinSide{Tokens: tokens}, true, "", 0, ""},
		{"issued", kube.JoinSide{CSRs: []kube.CSR{ownCSR("pending"), ownCSR("issued")}}, true, "", 0, ""},
		{"another's request", kube.JoinSide{Tokens: tokens, CSRs: []kube.CSR{other}}, true, "", 0, ""},
		{"denied", kube.JoinSide{Tokens: tokens, CSRs: []kube.CSR{ownCSR("denied")}}, false, symptom.CSRNotApproved, time.Nanosecond, "csr-1, is denied"},
		{"pending", kube.JoinSide{Tokens: tokens, CSRs: []kube.CSR{ownCSR("pending")}}, true, symptom.CSRNotApproved, mendLimit, "waits for approval"},
		{"pending, where somebody else approves", kube.JoinSide{Tokens: tokens, CSRs: []kube.CSR{ownCSR("pending")}}, false, symptom.CSRNotApproved, 0, ""},
		{"approved", kube.JoinSide{Tokens: tokens, CSRs: []kube.CSR{ownCSR("approved")}}, false, symptom.ControllerManagerFailing, signLimit, "cp1_1 leads and renewed its Lease 4"},
		{"token deleted", kube.JoinSide{}, false, symptom.TokenExpiredOrInvalid, mendLimit, "token abcdef"},
		{"a right", kube.JoinSide{Tokens: tokens, Needs: []kube.JoinNeed{right}}, true, symptom.BootstrapRBACForbidden, mendLimit, right.What},
		{"a right, in a cluster that may give it otherwise", kube.JoinSide{Tokens: tokens, Needs: []kube.JoinNeed{right}}, false, symptom.BootstrapRBACForbidden, 0, ""},
		{"a right that only rotation needs", kube.JoinSide{Tokens: tokens, Needs: []kube.JoinNeed{later}}, true, symptom.BootstrapRBACForbidden, 0, ""},
		{"a ConfigMap", kube.JoinSide{Tokens: tokens, Needs: []kube.JoinNeed{{What: "ConfigMap a/b is missing"}}}, true, symptom.JoinConfigMissing, mendLimit, "a/b"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w, told := sideOf(t, func() kube.JoinSide { return tt.side }, admits)
			mended := 0
			if tt.mends {
				w.Mend = func(context.Context, SideFault) { mended++ }
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := time.Now()
			f := w.Run(ctx)
			switch took := time.Since(begin); {
			case tt.ends == 0 && f != nil:
				t.Errorf("%s: ended by %+v", tt.name, f)
			case tt.ends > 0 && (f == nil || f.Symptom != tt.want || !strings.Contains(f.Evidence, tt.says) || took > tt.ends+SideEvery):
				t.Errorf("%s: after %s: %+v", tt.name, took, f)
			}
			if (tt.want == "") != (len(*told) == 0) || len(*told) > 1 || tt.want != "" && !strings.HasPrefix((*told)[0], string(tt.want)) {
				t.Errorf("%s: told %q", tt.name, *told)
			}
			if tt.want != "" {
				if at, err := time.ParseDuration(strings.Fields((*told)[0])[1]); err != nil || at > 3*time.Second {
					t.Errorf("%s: told %q", tt.name, *told)
				}
			}
			if tt.mends && (mended > 0) != (tt.want != "") {
				t.Errorf("%s: mended %d times", tt.name, mended)
			}
		})
	}
}

// A request that is approved in time, and a look that fails, are nothing to tell of.
func TestSideWatchIsQuietOnAHealthyJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		w, told := sideOf(t, nil, func() (*kube.Rejection, error) { return nil, errors.New("a webhook does not support dry run") })
		w.Look = func(context.Context) (kube.JoinSide, error) {
			switch age := time.Since(begin); {
			case age < time.Second:
				return kube.JoinSide{Tokens: []string{"abcdef"}, CSRs: []kube.CSR{ownCSR("pending")}}, nil
			case age < 2*time.Second:
				return kube.JoinSide{}, errors.New("the virtual IP moves")
			case age < 3*time.Second:
				return kube.JoinSide{Tokens: []string{"abcdef"}, CSRs: []kube.CSR{ownCSR("approved")}}, nil
			}
			return kube.JoinSide{Tokens: []string{"abcdef"}, CSRs: []kube.CSR{ownCSR("issued")}}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if f := w.Run(ctx); f != nil || len(*told) > 0 {
			t.Errorf("%+v, told %q", f, *told)
		}
	})
}

func TestSideWatchSeesAdmission(t *testing.T) {
	for _, tt := range []struct {
		rejection kube.Rejection
		lasts     time.Duration
		ends      time.Duration
	}{
		{kube.Rejection{By: "webhook x of ValidatingWebhookConfiguration y", Message: "no"}, time.Hour, 4 * time.Second},
		{kube.Rejection{By: "webhook x", Silent: true, Message: "no answer"}, time.Hour, SilentLimit + 3*time.Second},
		{kube.Rejection{By: "webhook x", Silent: true, Message: "no answer"}, 5 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			w, told := sideOf(t, func() kube.JoinSide { return kube.JoinSide{Tokens: []string{"abcdef"}} }, func() (*kube.Rejection, error) {
				if time.Since(begin) > tt.lasts {
					return nil, nil
				}
				return &tt.rejection, nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f := w.Run(ctx)
			if (f != nil) != (tt.ends > 0) || f != nil && (f.Symptom != symptom.AdmissionRejects || !strings.Contains(f.Hint, tt.rejection.By) || time.Since(begin) > tt.ends) {
				t.Errorf("%+v: after %s: %+v", tt.rejection, time.Since(begin), f)
			}
			if len(*told) != 1 || !strings.Contains((*told)[0], tt.rejection.By) {
				t.Errorf("%+v: told %q", tt.rejection, *told)
			}
		})
	}
}
