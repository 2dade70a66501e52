package join

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
)

type object = map[string]any

var (
	hashForm = regexp.MustCompile(`^sha256:[0-9a-fA-F]{64}$`)
	keyForm  = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// joinFlag is a flag of `kubeadm join`: a switch, or one with a value.
type joinFlag struct {
	isSwitch bool
	set      func(c *joinCommand, value string) error
}

// joinCommand is what a `kubeadm join` command says.
type joinCommand struct {
	endpoint, token, discoveryToken, bootstrapToken     string
	name, criSocket, certificateKey, advertise, patches string
	hashes, ignore, skip                                []string
	bindPort                                            int
	controlPlane, unsafe, hasEndpoint                   bool
}

// joinFlags are the flags of `kubeadm join` 1.31 to 1.37 that have a place in a JoinConfiguration. Discovery is by bootstrap token only.
var joinFlags = map[string]joinFlag{
	"token":                        {set: secret(tokenShape, func(c *joinCommand) *string { return &c.token })},
	"discovery-token":              {set: secret(tokenShape, func(c *joinCommand) *string { return &c.discoveryToken })},
	"tls-bootstrap-token":          {set: secret(tokenShape, func(c *joinCommand) *string { return &c.bootstrapToken })},
	"certificate-key":              {set: secret(keyForm, func(c *joinCommand) *string { return &c.certificateKey })},
	"node-name":                    {set: text(func(c *joinCommand) *string { return &c.name })},
	"cri-socket":                   {set: text(func(c *joinCommand) *string { return &c.criSocket })},
	"apiserver-advertise-address":  {set: setAddress},
	"patches":                      {set: text(func(c *joinCommand) *string { return &c.patches })},
	"discovery-token-ca-cert-hash": {set: setHashes},
	"ignore-preflight-errors":      {set: list(func(c *joinCommand) *[]string { return &c.ignore })},
	"skip-phases":                  {set: list(func(c *joinCommand) *[]string { return &c.skip })},
	"apiserver-bind-port":          {set: setPort},
	"control-plane":                {isSwitch: true, set: toggle(func(c *joinCommand) *bool { return &c.controlPlane })},
	"discovery-token-unsafe-skip-ca-verification": {isSwitch: true, set: toggle(func(c *joinCommand) *bool { return &c.unsafe })},
	// The engine chooses how much kubeadm logs.
	"v": {set: func(*joinCommand, string) error { return nil }},
}

func text(field func(*joinCommand) *string) func(*joinCommand, string) error {
	return func(c *joinCommand, value string) error {
		if value == "" {
			return errors.New("its value is empty")
		}
		*field(c) = value
		return nil
	}
}

// secret never repeats the value in an error.
func secret(form *regexp.Regexp, field func(*joinCommand) *string) func(*joinCommand, string) error {
	return func(c *joinCommand, value string) error {
		if !form.MatchString(value) {
			return fmt.Errorf("its value (%d characters) is not of the form %s", len(value), form)
		}
		*field(c) = value
		return nil
	}
}

func list(field func(*joinCommand) *[]string) func(*joinCommand, string) error {
	return func(c *joinCommand, value string) error {
		*field(c) = append(*field(c), strings.Split(value, ",")...)
		return nil
	}
}

func toggle(field func(*joinCommand) *bool) func(*joinCommand, string) error {
	return func(c *joinCommand, value string) (err error) {
		*field(c), err = strconv.ParseBool(value)
		return err
	}
}

func setAddress(c *joinCommand, value string) error {
	if net.ParseIP(value) == nil {
		return fmt.Errorf("%q is not an IP address", value)
	}
	c.advertise = value
	return nil
}

func setHashes(c *joinCommand, value string) error {
	for _, hash := range strings.Split(value, ",") {
		if !hashForm.MatchString(hash) {
			return fmt.Errorf("%q is not sha256: and 64 hexadecimal digits", hash)
		}
		c.hashes = append(c.hashes, hash)
	}
	return nil
}

func setPort(c *joinCommand, value string) error {
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("%q is not a port", value)
	}
	c.bindPort = int(port)
	return nil
}

// SplitCommand takes a command apart as `kubeadm token create --print-join-command` prints it and people store it: words, with \ at the
// ends of lines, with # comments and quotes around words. It is no shell: anything else that a shell would act on is refused.
func SplitCommand(s string) ([]string, error) {
	var words []string
	for _, l := range strings.Split(s, "\n") {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "#") {
			continue
		}
		for _, word := range strings.Fields(strings.TrimSuffix(l, "\\")) {
			word = unquote(word)
			if name, value, ok := strings.Cut(word, "="); ok {
				word = name + "=" + unquote(value)
			}
			if strings.ContainsAny(word, "`$;|&<>()'\"\\") {
				return nil, errors.New("the join command has characters that only a shell understands; give the plain `kubeadm join …`")
			}
			words = append(words, word)
		}
	}
	return words, nil
}

// ParseCommand turns the words of a `kubeadm join` command into a JoinConfiguration (v1beta4, YAML). Flags that it does not know, and
// values that cannot be, are refused, all in one error, which never repeats a secret.
func ParseCommand(words []string) ([]byte, error) {
	if len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
	}
	if len(words) < 2 || !strings.HasSuffix("/"+words[0], "/kubeadm") || words[1] != "join" {
		return nil, errors.New("the join command does not begin with `kubeadm join`")
	}
	c := &joinCommand{}
	problems := c.read(words[2:])
	problems = append(problems, c.contradictions()...)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the join command: %w", errors.Join(problems...))
	}
	return marshal(c.configuration())
}

func (c *joinCommand) read(words []string) (problems []error) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		flag, dashed := strings.CutPrefix(word, "-")
		if !dashed {
			if c.hasEndpoint {
				// Its value may be a secret whose flag was lost.
				problems = append(problems, errors.New("more than one argument that is not a flag; only the API server's HOST:PORT is"))
			}
			c.endpoint, c.hasEndpoint = word, true
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		f, known := joinFlags[name]
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("--%s is not a flag of `kubeadm join` that can be used here", name))
			if !given && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
				words = words[1:] // most likely its value
			}
			continue
		case !given && f.isSwitch:
			value = "true"
		case !given && len(words) == 0:
			problems = append(problems, fmt.Errorf("the value of --%s is missing", name))
			continue
		case !given:
			value, words = words[0], words[1:]
		}
		if err := f.set(c, value); err != nil {
			problems = append(problems, fmt.Errorf("--%s is wrong: %w", name, err))
		}
	}
	return problems
}

// contradictions are what kubeadm would refuse, or silently ignore.
func (c *joinCommand) contradictions() (problems []error) {
	if c.token == "" && c.discoveryToken == "" {
		problems = append(problems, errors.New("it needs --token or --discovery-token"))
	}
	if len(c.hashes) == 0 && !c.unsafe {
		problems = append(problems, errors.New("it needs --discovery-token-ca-cert-hash: without it any machine could pose as the cluster"))
	}
	if !c.controlPlane && (c.certificateKey != "" || c.advertise != "" || c.bindPort != 0) {
		problems = append(problems, errors.New("--certificate-key and --apiserver-… are of use only with --control-plane"))
	}
	return problems
}

func (c *joinCommand) configuration() object {
	by := object{"token": cmp.Or(c.discoveryToken, c.token)}
	put(by, "apiServerEndpoint", c.endpoint)
	if len(c.hashes) > 0 {
		by["caCertHashes"] = c.hashes
	}
	if c.unsafe {
		by["unsafeSkipCAVerification"] = true
	}
	discovery := object{"bootstrapToken": by}
	put(discovery, "tlsBootstrapToken", cmp.Or(c.bootstrapToken, c.token))
	registration := object{}
	put(registration, "name", c.name)
	put(registration, "criSocket", c.criSocket)
	if len(c.ignore) > 0 {
		registration["ignorePreflightErrors"] = c.ignore
	}
	o := object{"apiVersion": configAPI, "kind": "JoinConfiguration", "discovery": discovery}
	if len(registration) > 0 {
		o["nodeRegistration"] = registration
	}
	if c.controlPlane {
		o["controlPlane"] = c.controlPlaneConfiguration()
	}
	if c.patches != "" {
		o["patches"] = object{"directory": c.patches}
	}
	if len(c.skip) > 0 {
		o["skipPhases"] = c.skip
	}
	return o
}

func (c *joinCommand) controlPlaneConfiguration() object {
	endpoint := object{}
	put(endpoint, "advertiseAddress", c.advertise)
	if c.bindPort != 0 {
		endpoint["bindPort"] = c.bindPort
	}
	o := object{}
	if len(endpoint) > 0 {
		o["localAPIEndpoint"] = endpoint
	}
	put(o, "certificateKey", c.certificateKey)
	return o
}

func put(o object, key, value string) {
	if value != "" {
		o[key] = value
	}
}
