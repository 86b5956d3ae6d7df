-- Grain: one row per action of a table's checkpoint, from the JSON lines in `lake_actions`.
SELECT txn, add, remove, metaData, protocol
FROM read_json(
  getvariable('lake_actions'),
  format = 'newline_delimited',
  columns = {
    txn: 'STRUCT(appId VARCHAR, version BIGINT, lastUpdated BIGINT)',
    add: 'STRUCT(path VARCHAR, partitionValues MAP(VARCHAR, VARCHAR), size BIGINT, modificationTime BIGINT, dataChange BOOLEAN, stats VARCHAR, tags MAP(VARCHAR, VARCHAR), baseRowId BIGINT, defaultRowCommitVersion BIGINT, clusteringProvider VARCHAR)',
    remove: 'STRUCT(path VARCHAR, deletionTimestamp BIGINT, dataChange BOOLEAN, extendedFileMetadata BOOLEAN, partitionValues MAP(VARCHAR, VARCHAR), size BIGINT)',
    metaData: 'STRUCT(id VARCHAR, name VARCHAR, description VARCHAR, format STRUCT(provider VARCHAR, options MAP(VARCHAR, VARCHAR)), schemaString VARCHAR, partitionColumns VARCHAR[], configuration MAP(VARCHAR, VARCHAR), createdTime BIGINT)',
    protocol: 'STRUCT(minReaderVersion INTEGER, minWriterVersion INTEGER, readerFeatures VARCHAR[], writerFeatures VARCHAR[])'
  }
)
