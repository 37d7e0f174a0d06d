-- The secret that all replicas share. It is in the database so that it is copied, granted and
-- backed up with what it seals.
CREATE TABLE IF NOT EXISTS secrets (
	name $KEY NOT NULL,
	secret $KEY NOT NULL,
	PRIMARY KEY (name)
) $OPTIONS;
