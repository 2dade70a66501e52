package addon

func sops() Addon {
	return Addon{
		Name:    "sops",
		Purpose: "secrets in the Git repository, encrypted with SOPS and age, which Flux decrypts",
		Needs:   []string{"flux"},
	}
}
