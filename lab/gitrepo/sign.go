package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"k8slab/lab/atomicfile"
	"k8slab/lab/command"
	"k8slab/lab/event"
)

// signer makes the detached, armored signature of a text.
type signer func(ctx context.Context, text []byte) (string, error)

// openSigner reads a private key, and tries it.
func openSigner(ctx context.Context, file string) (signer, error) {
	data, err := atomicfile.ReadPrivate(file, maxFile)
	if err != nil {
		return nil, err
	}
	sign := sshSigner(file)
	if bytes.Contains(data, []byte("BEGIN PGP PRIVATE KEY BLOCK")) {
		if sign, err = pgpSigner(data); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if _, err := sign(ctx, []byte("trial\n")); err != nil {
		return nil, fmt.Errorf("%s cannot sign: %s; give an armored OpenPGP key or one of SSH, without a passphrase", file, event.OneLine(err.Error()))
	}
	return sign, nil
}

func pgpSigner(armored []byte) (signer, error) {
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(armored))
	if err != nil {
		return nil, err
	}
	if len(keys) != 1 {
		return nil, fmt.Errorf("it has %d keys, and one is wanted", len(keys))
	}
	return func(_ context.Context, text []byte) (string, error) {
		if keys[0].PrivateKey == nil || keys[0].PrivateKey.Encrypted {
			return "", errors.New("its private key is missing or has a passphrase")
		}
		var signature bytes.Buffer
		err := openpgp.ArmoredDetachSign(&signature, keys[0], bytes.NewReader(text), nil)
		return signature.String() + "\n", err
	}, nil
}

// sshSigner signs as git does, with the program of OpenSSH, which is the one that knows the format.
func sshSigner(file string) signer {
	return func(ctx context.Context, text []byte) (string, error) {
		return command.Command{
			Argv:  []string{"ssh-keygen", "-Y", "sign", "-n", "git", "-f", file},
			Env:   []string{"SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=force"}, // a passphrase is refused, not asked for
			Stdin: bytes.NewReader(text),
		}.Run(ctx)
	}
}

// signature is that of a commit that has none yet.
func signature(ctx context.Context, sign signer, c *object.Commit) (string, error) {
	e := &plumbing.MemoryObject{}
	if err := c.EncodeWithoutSignature(e); err != nil {
		return "", err
	}
	reader, err := e.Reader()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return "", err
	}
	s, err := sign(ctx, text)
	if err != nil {
		return "", fmt.Errorf("sign the commit: %w", err)
	}
	return s, nil
}
