"""CredentialProviderConfig: which programs know logins for image registries."""
